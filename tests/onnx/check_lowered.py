#!/usr/bin/env python3
"""Operators that are lowered when a model is read: random cases in gopt's interpreter against ONNX Runtime, or ONNX's reference where that lacks one.

usage: check_lowered.py GOPT      exit status 1 where one differs, 77 where onnxruntime is not installed
"""
import subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime as ort
except ImportError:
    sys.exit(77)
from onnx import helper as h, numpy_helper as nh, TensorProto as T
G = sys.argv[1]
counts = {"right": 0, "left": 0, "wrong": 0}
ort.set_default_logger_severity(4)
rng = np.random.default_rng(1)
def case(name, op, ins, attrs={}, opset=17, nout=1, consts={}, order=None):
    ins={k:np.asarray(v) for k,v in ins.items()}
    names=order or list(ins)+list(consts)
    nodes=op if isinstance(op,list) else [h.make_node(op,names,[f'o{i}' for i in range(nout)],**attrs)]
    g=h.make_graph(nodes,'g',[h.make_tensor_value_info(k,h.np_dtype_to_tensor_dtype(v.dtype),v.shape) for k,v in ins.items()],[h.make_empty_tensor_value_info(f'o{i}') for i in range(nout)],[nh.from_array(np.asarray(v),k) for k,v in consts.items()])
    m=h.make_model(g,opset_imports=[h.make_opsetid('',opset)],ir_version=8 if opset<19 else 10)
    with tempfile.TemporaryDirectory() as t:
        onnx.save(m,t+'/m.onnx')
        try:
            s=ort.InferenceSession(t+'/m.onnx',providers=['CPUExecutionProvider']); want=s.run(None,ins)
        except Exception as e:
            try:
                from onnx.reference import ReferenceEvaluator
                want=ReferenceEvaluator(m).run(None,ins); 
            except Exception as e2: print(name,'no reference',str(e)[:80],str(e2)[:80]); return
        np.savez(t+'/i.npz',**ins)
        r=subprocess.run([G,'run',t+'/m.onnx','--engine','interpreter','-o',t+'/o.npz','--inputs',t+'/i.npz'],capture_output=True,text=True)
        if r.returncode:
            counts["left"] += 1
            return print(name, 'is left:', r.stderr.strip().split('\n')[-1][-110:])
        o=np.load(t+'/o.npz'); got=[o[f'o{i}'] for i in range(nout)]
        ok=all(a.shape==b.shape and a.dtype==b.dtype and np.allclose(a,b,1e-4,1e-5,equal_nan=True) for a,b in zip(want,got))
        counts['right' if ok else 'wrong'] += 1
        if not ok: print(name, 'differs', [(a.shape, b.shape, a.dtype, b.dtype) for a, b in zip(want, got)])
f=lambda *s: rng.standard_normal(s).astype(np.float32)
for op in (18,21):
    g=2 if op==18 else 6
    case(f'group{op}','GroupNormalization',{'x':f(2,6,3,4),'s':f(g),'b':f(g)},{'num_groups':2,'epsilon':1e-3},op)
own=np.random.default_rng(2)
places=lambda: np.round(own.standard_normal((5,4))).astype(np.float32)
for op in (7,8,9,11):
    for name in ('ArgMax','ArgMin'):
        for axis in (0,1): case(f'{name}{op}_{axis}',name,{'x':places()},{'axis':axis,'keepdims':axis},op)
for op in ('MaxPool','AveragePool'):  # a window larger than the padded input
    case(f'{op} large',op,{'x':places()[None]},{'kernel_shape':[5],'strides':[2],'ceil_mode':1},19)
    case(f'{op} larger',op,{'x':places()[None,None]},{'kernel_shape':[7,5],'strides':[3,3],'pads':[1,0,0,0],'ceil_mode':1},19)
case('ArgMax12last','ArgMax',{'x':places()},{'axis':1,'select_last_index':1},12)
case('rms','RMSNormalization',{'x':f(2,3,8),'s':f(8)},{'axis':-1},23)
case('rms1','RMSNormalization',{'x':f(2,3,8),'s':f(3,8)},{'axis':1,'epsilon':.01},23)
case('lpnorm1','LpNormalization',{'x':f(3,4)},{'axis':0,'p':1}); case('lpnorm2','LpNormalization',{'x':f(3,4)},{'axis':-1,'p':2})
case('lppool','LpPool',{'x':f(1,2,7,7)},{'kernel_shape':[3,3],'p':2,'strides':[2,2],'pads':[1,1,1,1]},11); case('lppool1','LpPool',{'x':f(1,2,7)},{'kernel_shape':[2],'p':3},11)
case('lppool18','LpPool',{'x':f(1,2,7,7)},{'kernel_shape':[3,2],'p':1,'dilations':[2,1]},18)
case('glppool','GlobalLpPool',{'x':f(1,2,5,5)},{'p':3})
for al in (0,1):
    case(f'affine2d{al}','AffineGrid',{'t':f(2,2,3)},{'align_corners':al},20,consts={'size':np.array([2,3,4,5],np.int64)})
    case(f'affine3d{al}','AffineGrid',{'t':f(2,3,4)},{'align_corners':al},20,consts={'size':np.array([2,3,4,5,2],np.int64)})
case('crop','CenterCropPad',{'x':f(9,10)},{},18,consts={'s':np.array([5,13],np.int64)}); case('crop2','CenterCropPad',{'x':f(9,10,3)},{'axes':[1,-1]},18,consts={'s':np.array([7,6],np.int64)})
case('attn','Attention',{'q':f(2,3,4,8),'k':f(2,3,6,8),'v':f(2,3,6,10)},{},23); case('attn_m','Attention',{'q':f(2,4,4,8),'k':f(2,2,6,8),'v':f(2,2,6,8),'m':f(4,6)},{'scale':.2},23)
case('attn_c','Attention',{'q':f(1,3,6,8),'k':f(1,3,6,8),'v':f(1,3,6,8)},{'is_causal':1,'softcap':2.0},23); case('attn3','Attention',{'q':f(2,4,24),'k':f(2,6,12),'v':f(2,6,12)},{'q_num_heads':4,'kv_num_heads':2},23)
case('rope','RotaryEmbedding',{'x':f(2,3,4,8),'c':f(2,4,4),'s':f(2,4,4)},{},23); case('rope_i','RotaryEmbedding',{'x':f(2,4,24),'c':f(2,4,4),'s':f(2,4,4)},{'num_heads':3,'interleaved':1},23)
case('rope_p','RotaryEmbedding',{'x':f(2,3,4,8),'c':f(50,2),'s':f(50,2),'p':rng.integers(0,50,(2,4))},{'rotary_embedding_dim':4},23)
e=np.array([],np.float32)
for mode in ('linear','cubic','nearest'):
  for ct in ('half_pixel','asymmetric','align_corners','pytorch_half_pixel','half_pixel_symmetric'):
    for sz in ([1,2,3,9],[1,2,7,4]):
      case(f'resize {mode} {ct} {sz}','Resize',{'x':f(1,2,5,6)},{'mode':mode,'coordinate_transformation_mode':ct},19,consts={'roi':e,'sc':e,'size':np.array(sz,np.int64)})
    case(f'resize {mode} {ct} scales','Resize',{'x':f(1,2,5,6)},{'mode':mode,'coordinate_transformation_mode':ct},19,consts={'roi':e,'sc':np.array([1,1,.6,1.7],np.float32)})
for mode in ('linear','cubic'):
    case(f'resize aa {mode}','Resize',{'x':f(1,2,9,8)},{'mode':mode,'antialias':1},19,consts={'roi':e,'sc':np.array([1,1,.6,.5],np.float32)})
# Attributes that are written though they say nothing: exporters write them.
for op in (18,19):
    case(f'resize scales all {op}','Resize',{'x':f(1,2,5,6)},{'mode':'nearest','coordinate_transformation_mode':'asymmetric','nearest_mode':'floor','keep_aspect_ratio_policy':'stretch','antialias':0,'cubic_coeff_a':-.75,'exclude_outside':0,'extrapolation_value':0.},op,consts={'roi':e,'sc':np.array([1,1,2,2],np.float32)})
case('quantize all','QuantizeLinear',{'x':f(3,5)},{'axis':1,'block_size':0,'output_dtype':0,'precision':0,'saturate':1},23,consts={'s':np.float32(.05),'z':np.uint8(128)})
case('dequantize all','DequantizeLinear',{'x':rng.integers(0,256,(3,5)).astype(np.uint8)},{'axis':1,'block_size':0,'output_dtype':0},23,consts={'s':np.float32(.05),'z':np.uint8(128)})
# Of blocks along an axis, the last of which may be shorter; of 4 bits, two a byte; of half floats.
def of_bits(name,x,scale,zero,axis,block,opset=21,bits=8):
    t={8:{'i':T.INT8,'u':T.UINT8},4:{'i':T.INT4,'u':T.UINT4}}[bits]['u' if x.min()>=0 else 'i']
    def pack(v):
        v=np.append(v.ravel()&15,np.zeros(v.size%2,v.dtype)); return (v[::2]|(v[1::2]<<4)).astype(np.uint8)
    def tensor(k,v): return h.make_tensor(k,t,v.shape,(pack(v) if bits==4 else v.astype(np.int8 if t==T.INT8 else np.uint8)).tobytes(),raw=True)
    g=h.make_graph([h.make_node('DequantizeLinear',['w','s']+(['z'] if zero is not None else []),['d'],axis=axis,block_size=block),h.make_node('Cast',['d'],['e'],to=1),h.make_node('Add',['e','x'],['o0'])],'g',
                   [h.make_tensor_value_info('x',T.FLOAT,x.shape)],[h.make_empty_tensor_value_info('o0')],[tensor('w',x),nh.from_array(scale,'s')]+([tensor('z',zero)] if zero is not None else []))
    m=h.make_model(g,opset_imports=[h.make_opsetid('',opset)],ir_version=10)
    spread=lambda v: v if v.ndim==0 else np.repeat(v,block,axis)[tuple(slice(n) for n in x.shape)] if block else v.reshape([-1 if k==axis%x.ndim else 1 for k in range(x.ndim)])
    add=f(*x.shape); want=((x-(spread(zero) if zero is not None else 0))*spread(scale).astype(np.float32)).astype(scale.dtype).astype(np.float32)+add
    with tempfile.TemporaryDirectory() as d:
        onnx.save(m,d+'/m.onnx'); np.savez(d+'/i.npz',x=add)
        for engine in ('interpreter','cpu'):
            r=subprocess.run([G,'run',d+'/m.onnx','--engine',engine,'-o',d+'/o.npz','--inputs',d+'/i.npz','--force'],capture_output=True,text=True)
            good=r.returncode==0 and np.allclose(np.load(d+'/o.npz')['o0'],want,1e-3 if scale.dtype==np.float16 else 1e-6,1e-6)
            counts['right' if good else 'wrong']+=1
            if not good: print(name,engine,'differs',r.stderr[-200:])
ints=np.random.default_rng(3)
for bits,low,high in ((8,0,256),(8,-128,128),(4,0,16),(4,-8,8)):
    draw=lambda *s: np.append(ints.integers(low,high,int(np.prod(s))-1),low if low else high-1).reshape(s)
    for dt in (np.float32,np.float16):
        sc=lambda *s: (ints.random(s)*.1+.01).astype(dt)
        of_bits(f'blocks {bits} {low} {dt.__name__}',draw(9,7),sc(3,7),draw(3,7),0,4,bits=bits)
        of_bits(f'blocks last {bits} {low} {dt.__name__}',draw(3,5,7),sc(3,5,3),None,-1,3,bits=bits)
        of_bits(f'columns {bits} {low} {dt.__name__}',draw(5,7),sc(7),draw(7),1,0,bits=bits)
        of_bits(f'whole {bits} {low} {dt.__name__}',draw(5,7),sc(),draw(1).reshape(()),1,0,bits=bits)
case('quantize blocks','QuantizeLinear',{'x':f(5,9)},{'axis':1,'block_size':4},21,consts={'s':np.abs(f(5,3))*.05+.01,'z':rng.integers(0,256,(5,3)).astype(np.uint8)})
case('quantize halves','QuantizeLinear',{'x':f(5,9).astype(np.float16)},{'axis':1},21,consts={'s':(np.abs(f(9))*.05+.01).astype(np.float16),'z':rng.integers(0,256,9).astype(np.uint8)})
case('cumsum','CumSum',{'x':f(3,7)},{'exclusive':1,'reverse':1},14,consts={'a':np.array(1,np.int64)})
case('einsum','Einsum',{'a':f(2,3,4),'b':f(2,4,5)},{'equation':'bij,bjk->bik'}); case('einsum2','Einsum',{'a':f(3,4,3)},{'equation':'iji->j'}); case('einsum3','Einsum',{'a':f(2,3),'b':f(3,4),'c':f(4)},{'equation':'ij,jk,k->i'})
for pm in ('zeros','border','reflection'):
  for md in ('bilinear','nearest'):
    case(f'grid {pm} {md}','GridSample',{'x':f(1,2,5,6),'g':(1.5*f(1,4,3,2))},{'padding_mode':pm,'mode':md,'align_corners':0},16)
for pm in ('zeros','border','reflection'):
  for al in (0,1):
    case(f'grid cubic {pm} {al}','GridSample',{'x':f(1,2,5,6),'g':(1.5*f(1,4,3,2))},{'padding_mode':pm,'mode':'bicubic','align_corners':al},16)
# Statistics are floats, whatever is normalized.
for t in (np.float16,np.float64):
    case(f'layernorm statistics {t.__name__}','LayerNormalization',{'x':f(3,8).astype(t)},{},17,3,consts={'w':f(8).astype(t),'b':f(8).astype(t)})
case('groupnorm float64','GroupNormalization',{'x':f(2,6,4,3).astype(np.float64)},{'num_groups':3},21,1,consts={'w':f(6).astype(np.float64),'b':f(6).astype(np.float64)})
# Recurrent: all directions, layouts (which the runtime lacks, ONNX's reference has), lengths, activations, peepholes.
def recurrent(name, op, gates, has_cell, direction='forward', lengths=None, **attrs):
    steps, batch, inputs, hidden, ways = 5, 3, 4, 6, 2 if direction=='bidirectional' else 1
    ins={'x':f(steps,batch,inputs),'w':f(ways,gates*hidden,inputs)*.5,'r':f(ways,gates*hidden,hidden)*.5,'b':f(ways,2*gates*hidden)*.3,'h':f(ways,batch,hidden)}
    order=['x','w','r','b','l' if lengths is not None else '','h']
    if has_cell: ins['c']=f(ways,batch,hidden); order.append('c')
    if has_cell and attrs.pop('peepholes',0): ins['p']=f(ways,3*hidden)*.5; order.append('p')
    if lengths is not None: ins['l']=np.array(lengths,np.int32)
    case(name,op,ins,{'hidden_size':hidden,'direction':direction,**attrs},14,2+has_cell,order=order)
for op,gates,has_cell in (('RNN',1,False),('GRU',3,False),('LSTM',4,True)):
    for way in ('forward','reverse','bidirectional'):
        recurrent(f'{op} {way}',op,gates,has_cell,way); recurrent(f'{op} {way} lengths',op,gates,has_cell,way,[5,2,3])
    recurrent(f'{op} clip',op,gates,has_cell,clip=.4)
recurrent('GRU after','GRU',3,False,'bidirectional',linear_before_reset=1); recurrent('LSTM peepholes','LSTM',4,True,'bidirectional',[5,1,4],peepholes=1)
recurrent('LSTM coupled','LSTM',4,True,input_forget=1)
for a in (['Relu'],['Affine'],['LeakyRelu'],['ThresholdedRelu'],['ScaledTanh'],['HardSigmoid'],['Elu'],['Softsign'],['Softplus']):
    recurrent(f'RNN {a}','RNN',1,False,activations=a,**({'activation_alpha':[.7],'activation_beta':[.3]} if a[0] in ('Affine','ScaledTanh','HardSigmoid') else {'activation_alpha':[.7]} if a[0] in ('LeakyRelu','Elu','ThresholdedRelu') else {}))
recurrent('GRU activations','GRU',3,False,'bidirectional',activations=['HardSigmoid','Softsign','Sigmoid','LeakyRelu'],activation_alpha=[.3,.1],activation_beta=[.4])
# Products of integers with zero points that are computed, known, one or one a column, and none.
def b8(t,*s): return rng.integers(np.iinfo(t).min,np.iinfo(t).max+1,s).astype(t)
for ta,tb in ((np.uint8,np.int8),(np.uint8,np.uint8),(np.int8,np.int8)):
    for az in (None,'computed','known'):
        for bz in (None,'computed','known','columns'):
            ins={'a':b8(ta,2,7,33),**({'az':b8(ta)} if az=='computed' else {}),**({'bz':b8(tb)} if bz=='computed' else {})}
            consts={'b':b8(tb,33,19),**({'az':b8(ta)} if az=='known' else {}),**({'bz':b8(tb)} if bz=='known' else {'bz':b8(tb,19)} if bz=='columns' else {})}
            if tb is np.int8: consts['b']//=2  # ONNX Runtime's sums of two products saturate on processors without VNNI
            case(f'matmulinteger {ta.__name__} {tb.__name__} {az} {bz}','MatMulInteger',ins,{},15,1,consts,['a','b']+(['az' if az else ''] if az or bz else [])+(['bz'] if bz else []))
# Places that are computed, and that are known.
i64=lambda *v: np.array(v,np.int64)
for k,attrs in ((3,{}),(2,{'axis':0}),(4,{'largest':0}),(5,{'axis':1})):
    case(f'topk {k} {attrs}','TopK',{'x':rng.integers(0,5,(3,5,7) if attrs.get('axis')!=0 else (4,6)).astype(np.float32)},attrs,11,2,{'k':i64(k)})
for red in ('none','add','mul','max','min'):
    a={} if red=='none' else {'reduction':red}; o=18
    unique=np.stack([rng.permutation(5)[:3] for _ in range(4)],1)
    case(f'scatter {red}','ScatterElements',{'x':f(5,4),'i':unique-5*(unique>3),'u':f(3,4)},a,o)
    case(f'scatter smaller {red}','ScatterElements',{'x':f(4,5,3),'i':np.argsort(rng.random((2,5,2)),1)[:,:3],'u':f(2,3,2)},{'axis':1,**a},o)
    case(f'scatternd {red}','ScatterND',{'x':f(4,3,2),'i':i64([0,1],[3,-1],[2,2]),'u':f(3,2)},a,o); case(f'scatternd known {red}','ScatterND',{'x':f(4,3,2),'u':f(3,2)},a,o,consts={'i':i64([0,1],[3,-1],[2,2])},order=['x','i','u'])
    if red!='none':
        case(f'scatter twice {red}','ScatterElements',{'x':f(5,2),'i':i64([0,1],[0,1],[4,1]),'u':f(3,2)},a,o); case(f'scatternd known twice {red}','ScatterND',{'x':f(5,2),'u':f(3,2)},a,o,consts={'i':i64([4],[4],[0])},order=['x','i','u'])
# Known places that are a box, counted from the end or not, and those that are nearly one: another order, a place twice, steps of two.
boxed=np.random.default_rng(5)
for red in ('none','add','mul','max','min'):
    for number in range(6):
        extents=(4,5,6); named=1+number%3
        spans=[sorted(boxed.choice(e+1,2,replace=False)) for e in extents[:named]]; ways=[np.arange(a,b) for a,b in spans]
        if number==3: ways[0]=ways[0]-extents[0]
        if number==4: ways[-1]=ways[-1][::-1]
        if number==5: ways[1]=np.arange(0,5,2)
        where=np.stack(np.meshgrid(*ways,indexing='ij'),-1)
        if number==2: where=where.reshape(-1,named)
        u=boxed.standard_normal(where.shape[:-1]+extents[named:]).astype(np.float32)
        case(f'scatternd box {red} {number}','ScatterND',{'x':boxed.standard_normal(extents).astype(np.float32),'u':u},{} if red=='none' else {'reduction':red},18,consts={'i':where},order=['x','i','u'])
case('scatter 10','Scatter',{'x':f(5,4),'i':i64([0,1,2,3],[4,0,1,0]),'u':f(2,4)},{},10)
case('gathernd','GatherND',{'x':f(4,3,2),'i':i64([[0,1],[3,-1]],[[2,2],[-4,0]])},{},12); case('gathernd batch','GatherND',{'x':f(2,3,4),'i':i64([[2],[0]],[[1],[1]])},{'batch_dims':1},12); case('gathernd 11','GatherND',{'x':f(3,4),'i':i64([2],[-1])},{},11)
for attrs in ({'kernel_shape':[2,3],'strides':[2,1]},{'kernel_shape':[3,3],'pads':[1,0,1,2],'dilations':[1,2]},{'kernel_shape':[2,2],'strides':[2,2],'storage_order':1},{'kernel_shape':[3,3],'auto_pad':'SAME_LOWER','strides':[2,2]},{'kernel_shape':[3,2],'strides':[2,2],'ceil_mode':1}):
    case(f'maxpool {attrs}','MaxPool',{'x':rng.integers(0,4,(2,3,7,8)).astype(np.float32)},attrs,12,2)
case('maxpool 1d','MaxPool',{'x':f(2,3,9)},{'kernel_shape':[3]},12,2); case('maxpool 3d','MaxPool',{'x':f(1,2,4,5,6)},{'kernel_shape':[2,2,2]},12,2)
case('unpool','MaxUnpool',{'x':f(1,1,2,2),'i':i64([[[5,7],[13,15]]]).reshape(1,1,2,2)},{'kernel_shape':[2,2],'strides':[2,2]},11)
for o,mode,ct in ((16,'avg','half_pixel'),(16,'avg','output_half_pixel'),(16,'max','half_pixel'),(10,'avg',None)):
    case(f'roi {o} {mode} {ct}','RoiAlign',{'x':f(2,3,9,11),'r':np.sort(rng.random((5,2,2))*12-1,1).reshape(5,4).astype(np.float32),'b':i64(0,1,1,0,1)},{'output_height':3,'output_width':2,'sampling_ratio':2,'spatial_scale':.8,'mode':mode,**({'coordinate_transformation_mode':ct} if ct else {})},o)
for mode in ('linear','circular'): case(f'tensorscatter {mode}','TensorScatter',{'x':f(2,3,6,4),'u':f(2,3,2,4),'i':i64(1,4 if mode=='linear' else 5)},{'mode':mode},24)
for n,k,attrs in ((5000,7,{}),(4500,2100,{}),(6001,1,{'largest':0}),(20011,40,{}),(3000,300,{'largest':0}),(700,700,{})):
    case(f'topk of {n}','TopK',{'x':rng.integers(-900,900,(2,n)).astype(np.float32)},attrs,11,2,{'k':i64(k)})
case('topk none','TopK',{'x':np.ones((2,9000),np.float32)},{},11,2,{'k':i64(0)}); case('topk, few values','TopK',{'x':rng.integers(0,3,(2,9000,2)).astype(np.int32)},{'axis':-2},11,2,{'k':i64(60)}); case('topk of many rows','TopK',{'x':rng.integers(0,9,(30,333)).astype(np.float32)},{},11,2,{'k':i64(9)}); case('topk in the middle','TopK',{'x':rng.integers(-900,900,(2,4999,3))},{'axis':1},11,2,{'k':i64(3)}); case('topk infinite','TopK',{'x':np.full((1,2500),-np.inf,np.float32)},{},11,2,{'k':i64(5)}); case('topk 10','TopK',{'x':f(3,40)},{},10,2,{'k':i64(4)})
for t in (np.float16,np.float64,np.int32,np.int64):
    x=(rng.integers(-90,90,(3,50)) if t in (np.int32,np.int64) else rng.standard_normal((3,50))).astype(t)
    for attrs in ({},{'reverse':1},{'exclusive':1,'reverse':1}): case(f'cumsum {t.__name__} {attrs}','CumSum',{'x':x},attrs,14,consts={'a':np.array(1,np.int64)})
    case(f'topk {t.__name__}','TopK',{'x':x},{'largest':0},11,2,{'k':i64(9)}); case(f'topk {t.__name__} first','TopK',{'x':x.T.copy()},{'axis':0},11,2,{'k':i64(20)})
case('cumsum of columns','CumSum',{'x':f(2,40,3,5)},{'exclusive':1},14,consts={'a':np.array(-3,np.int64)})
for attrs in ({},{'reverse':1},{'exclusive':1}): case(f'cumprod {attrs}','CumProd',{'x':f(2,30)},attrs,26,consts={'a':np.array(1,np.int64)})
# Transforms and determinants.
for attrs in ({},{'inverse':1},{'onesided':1},{'axis':2}):
    case(f'dft {attrs}','DFT',{'x':f(2,7,5,1 if 'onesided' in attrs else 2)},attrs,17)
case('dft 20','DFT',{'x':f(2,7,5,1)},{},20,consts={'n':np.array(9,np.int64),'a':np.array(-2,np.int64)}); case('dft short','DFT',{'x':f(2,7,1)},{'onesided':1},17,consts={'n':np.array(4,np.int64)})
case('stft','STFT',{'x':f(2,20,1),'w':f(6)},{},17,consts={'s':np.array(4,np.int64)},order=['x','s','w']); case('stft whole','STFT',{'x':f(1,20,1)},{'onesided':0},17,consts={'s':np.array(5,np.int64),'n':np.array(8,np.int64)},order=['x','s','','n'])
for n in (1,2,3,5): case(f'det {n}','Det',{'x':f(4,n,n)},{},11)
singular=f(2,3,3); singular[0,2]=singular[0,0]; singular[1]=0
case('det singular','Det',{'x':singular},{},11)
# What trains, and what is left of it.
case('dropout','Dropout',{'x':f(3,4)},{},13,2); case('batchnorm','BatchNormalization',{'x':f(3,4,5),'s':f(4),'b':f(4),'m':f(4),'v':np.abs(f(4))},{'training_mode':1,'momentum':.8},15,3)
for t in (np.uint8,np.uint16,np.uint32,np.uint64):
    for d in ('LEFT','RIGHT'): case(f'shift {t.__name__} {d}','BitShift',{'x':rng.integers(0,min(np.iinfo(t).max,2**63-1),(3,5),dtype=t,endpoint=True),'s':rng.integers(0,8*t().itemsize,(3,5)).astype(t)},{'direction':d},11)
for o in (10,13): case(f'qconv {o}','QLinearConv',{'x':rng.integers(0,255,(1,2,5,5)).astype(np.uint8),'xs':np.float32(.02),'xz':np.uint8(120),'w':rng.integers(0,255,(3,2,3,3)).astype(np.uint8),'ws':np.float32(.03),'wz':np.uint8(110),'ys':np.float32(.5),'yz':np.uint8(100)},{},o)
case('qmatmul','QLinearMatMul',{'a':rng.integers(0,255,(4,6)).astype(np.uint8),'as':np.float32(.02),'az':np.uint8(120),'b':rng.integers(0,255,(6,3)).astype(np.uint8),'bs':np.float32(.03),'bz':np.uint8(110),'ys':np.float32(.1),'yz':np.uint8(100)},{},10)
case('tfidf','TfIdfVectorizer',{'x':rng.integers(0,4,(3,9))},{'mode':'TFIDF','min_gram_length':1,'max_gram_length':2,'max_skip_count':2,'ngram_counts':[0,3],'ngram_indexes':[4,1,2,0,3],'pool_int64s':[0,1,3,1,2,3,0],'weights':[.5,2.,1.,3.,.25]},9)
for t in (np.uint8,np.int16,np.int32,np.uint32,np.int64):
    draw=lambda: rng.integers(np.iinfo(t).min,np.iinfo(t).max,(3,5),dtype=t,endpoint=True)
    for op in ('BitwiseAnd','BitwiseOr','BitwiseXor'): case(f'{op} {t.__name__}',op,{'a':draw(),'b':draw()},{},18)
    case(f'BitwiseNot {t.__name__}','BitwiseNot',{'a':draw()},{},18)
case('swish','Swish',{'x':f(3,4)},{'alpha':.7},24); case('cumprod','CumProd',{'x':f(3,7)},{'exclusive':1,'reverse':1},26,consts={'a':np.array(1,np.int64)})
for attrs,n in (({},20),({'strides':[2,1]},10),({'dilations':[2,1],'pads':[1,0,1,2]},35)):
    case(f'col2im {attrs}','Col2Im',{'x':f(2,3*6,n)},attrs,18,consts={'i':i64(5,7),'b':i64(2,3)})
case('dft to real','DFT',{'x':f(2,5,2)},{'inverse':1,'onesided':1},20,consts={'n':np.array(8,np.int64),'a':np.array(1,np.int64)},order=['x','n','a'])
# Attention: what hides keys, and what is shown of it. The runtime lacks some; ONNX's reference has all.
q=lambda n=4,h=4: f(2,h,n,8)
for attrs in ({'is_causal':1},{'left_window_size':1},{'left_window_size':2,'right_window_size':0},{'softcap':2.}):
    case(f'attn {attrs}','Attention',{'q':q(),'k':q(6,2),'v':q(6,2)},attrs,25); case(f'attn masked {attrs}','Attention',{'q':q(),'k':q(6,2),'v':q(6,2),'m':rng.random((2,1,4,6))>.5},attrs,25)
    case(f'attn past {attrs}','Attention',{'q':q(),'k':q(4,2),'v':q(4,2),'pk':q(3,2),'pv':q(3,2)},attrs,25,3,order=['q','k','v','','pk','pv'])
    case(f'attn counted {attrs}','Attention',{'q':q(),'k':q(6,2),'v':q(6,2),'n':i64(5,6)},attrs,25,order=['q','k','v','','','','n'])
for mode in range(4): case(f'attn shows {mode}','Attention',{'q':q(),'k':q(6,4),'v':q(6,4),'m':f(4,6)},{'qk_matmul_output_mode':mode},24,4)
case('attn short mask','Attention',{'q':q(),'k':q(6,4),'v':q(6,4),'m':f(4,5)},{},24); case('attn none','Attention',{'q':q(2),'k':q(2),'v':q(2),'m':np.array([[False,False],[True,True]])},{},24)
# A mask of shifted windows, as exporters write it: an image whose regions are assigned through ScatterND.
def regions(side, window, shift):
    nodes=[h.make_node('ConstantOfShape',['whole'],['m0'],value=nh.from_array(np.zeros(1,np.float32)))]; consts={'whole':i64(1,side,side,1)}; number=0
    cuts=[(0,side-window),(side-window,side-shift),(side-shift,side)]
    for a,b in cuts:
        for c,d in cuts:
            places=np.stack(np.meshgrid([0],np.arange(a,b),np.arange(c,d),[0],indexing='ij'),-1)
            consts[f'i{number}']=places; consts[f'u{number}']=np.full(places.shape[:-1],number,np.float32)
            nodes.append(h.make_node('ScatterND',[f'm{number}',f'i{number}',f'u{number}'],[f'm{number+1}'])); number+=1
    n=side//window
    consts.update(split=i64(n,window,n,window),rows=i64(n*n,1,window*window),columns=i64(n*n,window*window,1),zero=np.float32(0),far=np.float32(-100))
    nodes+=[h.make_node('Reshape',[f'm{number}','split'],['p']),h.make_node('Transpose',['p'],['t'],perm=[0,2,1,3]),h.make_node('Reshape',['t','rows'],['r']),h.make_node('Reshape',['t','columns'],['c']),
            h.make_node('Sub',['r','c'],['e']),h.make_node('Equal',['e','zero'],['same']),h.make_node('Where',['same','zero','far'],['mask']),h.make_node('Add',['x','mask'],['s']),h.make_node('Softmax',['s'],['o0'])]
    return nodes, consts
nodes,consts=regions(8,4,2); case('shifted windows',nodes,{'x':f(4,16,16)},{},17,1,consts)
# Bodies: both branches, a known number of steps, what a condition that is computed ends.
def body(name, nodes, ins, outs): return h.make_graph(nodes,name,[h.make_tensor_value_info(n,t,s) for n,t,s in ins],[h.make_tensor_value_info(n,t,s) for n,t,s in outs])
F=T.FLOAT
then=body('then',[h.make_node('Sin',['x'],['y1'])],[],[('y1',F,[2,3])]); other=body('else',[h.make_node('Add',['x','x'],['y2'])],[],[('y2',F,[2,3])])
def model_case(name, nodes, ins, nout, consts={}, opset=17): case(name,nodes,ins,{},opset,nout,consts)
for c in (True,False): model_case(f'if {c}',[h.make_node('If',['c'],['o0'],then_branch=then,else_branch=other)],{'x':f(2,3),'c':np.array(c)},1)
step=body('step',[h.make_node('Mul',['v','w'],['v1']),h.make_node('Cast',['i'],['fi'],to=F),h.make_node('Add',['v1','fi'],['e']),h.make_node('Identity',['k'],['k1'])],[('i',T.INT64,[]),('k',T.BOOL,[]),('v',F,[2,3])],[('k1',T.BOOL,[]),('v1',F,[2,3]),('e',F,[2,3])])
model_case('loop',[h.make_node('Loop',['n','','v0'],['o0','o1'],body=step)],{'v0':f(2,3),'w':f(2,3)},2,{'n':np.array(4,np.int64)})
until=body('until',[h.make_node('Add',['v','w'],['v1']),h.make_node('ReduceSum',['v1'],['s'],keepdims=0),h.make_node('Less',['s','most'],['k1'])],[('i',T.INT64,[]),('k',T.BOOL,[]),('v',F,[2,3])],[('k1',T.BOOL,[]),('v1',F,[2,3])])
model_case('loop until',[h.make_node('Loop',['n','','v0'],['o0'],body=until)],{'v0':f(2,3),'w':np.abs(f(2,3)),'most':np.float32(9)},1,{'n':np.array(8,np.int64)})
scan=body('scan',[h.make_node('Add',['s','p'],['s1']),h.make_node('Mul',['s1','q'],['y'])],[('s',F,[3]),('p',F,[3]),('q',F,[3])],[('s1',F,[3]),('y',F,[3])])
for attrs in ({},{'scan_input_directions':[0,1],'scan_output_directions':[1]},{'scan_input_axes':[0,1],'scan_output_axes':[1]}):
    model_case(f'scan {attrs}',[h.make_node('Scan',['s0','a','b'],['o0','o1'],body=scan,num_scan_inputs=2,**attrs)],{'s0':f(3),'a':f(5,3),'b':f(3,5) if 'scan_input_axes' in attrs else f(5,3)},2)
model_case('optional',[h.make_node('OptionalHasElement',['x'],['o0']),h.make_node('OptionalGetElement',['x'],['e']),h.make_node('Relu',['e'],['o1']),h.make_node('OptionalHasElement',[],['o2'])],{'x':f(2,3)},3,opset=18)
print(counts)
sys.exit(1 if counts["wrong"] or counts["right"] < 440 else 0)
